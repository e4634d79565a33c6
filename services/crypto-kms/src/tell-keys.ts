import path from 'node:path';
import type { Bus } from '@colonnade/bus';
import {
  type CloudEvent,
  encode,
  eventMsgId,
  startCall,
  subjectOfEvent,
  zCloudEvent,
} from '@colonnade/contracts';
import type { Events } from './events.ts';
import { newsOf, type ToldKey, zToldKey } from './key-news.ts';
import type { Keyring } from './keyring/keyring.ts';
import { openStateDir, readStateFile, replaceStateFile } from './state-dir.ts';
import { startTurns } from './turns.ts';

const EVERY_MS = 1000;
const BUDGET_MS = 2000;

type Options = {
  stateDir: string;
  keyrings: readonly Pick<Keyring, 'name' | 'versions' | 'minVersion' | 'refresh'>[];
  bus: Pick<Bus, 'publishDurable'>;
  events: Pick<Events, 'keysRead' | 'keyTold' | 'keyUntold'>;
};

/**
 * Tells the bus what becomes of the keys, beside the work that changes them, which never waits for it: by hand, by age or by the
 * clock, here or at another replica. What has been told is kept, so what the bus did not take is told later, also after a restart.
 * Disposing waits for the turn under way.
 * @throws ColonnadeError `misconfigured`: what was told cannot be read
 */
export async function tellKeys(options: Options): Promise<AsyncDisposable> {
  const dir = path.join(options.stateDir, 'keys-told');
  openStateDir(dir);
  const tellers = await Promise.all(options.keyrings.map((keyring) => openTeller(dir, keyring, options)));
  return startTurns(EVERY_MS, async () => {
    for (const tell of tellers) await tell();
  });
}

async function openTeller(dir: string, keyring: Options['keyrings'][number], { bus, events }: Options) {
  const file = path.join(dir, `${keyring.name}.json`);
  const read = () => readStateFile(file, zToldKey);
  const write = (content: ToldKey) => replaceStateFile(file, zToldKey, content);
  let told = await read();
  if (told === undefined) {
    told = newsOf(undefined, keyring, Date.now()).told;
    await write(told);
  }
  let isUntold = false;
  const turn = async (): Promise<void> => {
    if (newsOf(told, keyring, Date.now()).news.length === 0) return;
    // Another replica may have told of it; what it told of is looked at as it has seen it.
    told = await read();
    if (await keyring.refresh()) events.keysRead(keyring.versions());
    const now = newsOf(told, keyring, Date.now());
    for (const event of now.news) await publish(bus, event);
    if (now.news.length > 0 || told === undefined) await write(now.told);
    told = now.told;
    for (const { type, subject } of now.news) events.keyTold(type, subject);
  };
  return async (): Promise<void> => {
    try {
      await turn();
      isUntold = false;
    } catch (thrown) {
      events.keyUntold(keyring.name, thrown, !isUntold);
      isUntold = true;
    }
  };
}

/** It may have been told by another replica, or before its acknowledgement was lost. */
async function publish(bus: Options['bus'], event: CloudEvent): Promise<void> {
  const payload = encode(zCloudEvent, event);
  const message = { subject: subjectOfEvent(event), msgId: eventMsgId(event), payload };
  await bus.publishDurable({ ...message, allowDuplicate: true }, startCall(BUDGET_MS));
}
