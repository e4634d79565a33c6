import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zServiceEventType } from '../service-events.ts';
import { zServiceName } from '../workload.ts';
import { pageOf, zTimeAsked } from './common.ts';
import { secretField } from './secret-fields.ts';

/** A type of events that a service may publish. Without a schema, its data may be anything. */
const zServiceType = z.strictObject({
  type: zServiceEventType,
  /** A JSON Schema of draft 2020-12, or of draft-07 when its `$schema` says so. */
  schema: zValue.optional(),
});
export type ServiceType = z.infer<typeof zServiceType>;

const zServiceTypes = z
  .array(zServiceType)
  .max(LIMITS.typesPerService, `more than ${LIMITS.typesPerService} types`)
  .refine((types) => new Set(types.map(({ type }) => type)).size === types.length, 'a type is listed twice');

/** `POST /services` */
export const zServiceCreate = z.strictObject({ id: zServiceName, types: zServiceTypes });

/** `PUT /services/{id}` */
export const zServiceUpdate = z.strictObject({ types: zServiceTypes });

export const zServiceView = z.strictObject({
  id: z.string(),
  types: z.array(z.strictObject({ type: z.string(), schema: zValue.optional() })),
  /** Of hosts that have an identity of this service, or may come for one. */
  enrolment_ids: z.array(z.string()),
  clock: int(),
  etag: z.string(),
});
export const zServicePage = pageOf(zServiceView);

/** `POST /events`: one event, as CloudEvents has it; its source is the caller's. */
export const zEventPublish = z.strictObject({
  /** The same for every try of one event: what is sent twice is stored once. */
  id: z.string().regex(/^[\x21-\x7e]{1,128}$/u, 'id must be 1–128 visible ASCII characters'),
  type: zServiceEventType,
  /** What it is about. */
  subject: z
    .string()
    .max(LIMITS.nameBytes, `subject is longer than ${LIMITS.nameBytes} characters`)
    // A hook gets it in a variable, which can hold no NUL.
    .refine((text) => !/\p{Cc}/u.test(text), 'subject holds a control character')
    .optional(),
  /** When it happened; now, unless it says so. */
  time: zTimeAsked.optional(),
  /** Anything may be in it, so no record shows it. */
  data: secretField(zValue).optional(),
});
export type EventPublish = z.infer<typeof zEventPublish>;

export const zEventPublished = z.strictObject({
  id: z.string(),
  /** It was stored before, with this id. */
  duplicate: z.boolean(),
});
