// Half of the floor of a merge: opens envelopes with bare node:crypto, asked over bare NATS.
import process from 'node:process';
import { connect } from '@nats-io/transport-node';
import { type Envelope, kekOf, openEnvelope } from './envelope.ts';

const kek = kekOf(process.env.FLOOR_KEK ?? '');
const nats = await connect({ servers: process.env.FLOOR_NATS ?? '' });
nats.subscribe('floor.open', {
  callback: (_, message) => {
    const envelopes = message.json<Envelope[]>();
    const opened = envelopes.map((one) => openEnvelope(kek, one).toString('utf8'));
    message.respond(JSON.stringify(opened));
  },
});
await nats.flush();
process.stdout.write('ready\n');
