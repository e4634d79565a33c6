import { z } from 'zod';
import { zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';

/** What a rule may look at: what a minion's inventory says, and who it is. */
export const RULE_FIELDS = [
  ...(['minion_id', 'master', 'hostname', 'os.name', 'os.version', 'os.service_pack', 'os.string'] as const),
  ...(['ips', 'agent_type', 'roles'] as const),
] as const;

const PROPERTY = /^properties(\.[^.\u0000-\u001f]{1,128}){1,8}$/u;
const zField = z
  .string()
  .refine(
    (s) => (RULE_FIELDS as readonly string[]).includes(s) || PROPERTY.test(s),
    `must be one of ${RULE_FIELDS.join(', ')}, or properties.<key>`,
  );

const zScalar = zValue.refine(
  (v) =>
    v !== null &&
    typeof v !== 'object' &&
    (typeof v !== 'string' || Buffer.byteLength(v) <= LIMITS.inventoryTextBytes),
  'must be a text, a number or a boolean',
);
const zText = z.string().refine((s) => Buffer.byteLength(s) <= LIMITS.inventoryTextBytes, 'is too long');

export type RuleValue = string | number | bigint | boolean;
export type RuleCondition =
  | { field: string; op: 'exists' | 'absent' }
  | { field: string; op: 'eq' | 'ne'; value: RuleValue }
  | { field: string; op: 'in'; values: readonly RuleValue[] }
  | { field: string; op: 'glob'; pattern: string };
/** What makes a minion a member of a collection: one condition, or several of which all or any hold. */
export type CollectionRule =
  | RuleCondition
  | { all: readonly CollectionRule[] }
  | { any: readonly CollectionRule[] };

const zCondition = z.discriminatedUnion('op', [
  z.strictObject({ field: zField, op: z.enum(['exists', 'absent']) }),
  z.strictObject({ field: zField, op: z.enum(['eq', 'ne']), value: zScalar }),
  z.strictObject({
    field: zField,
    op: z.literal('in'),
    values: z.array(zScalar).min(1).max(LIMITS.ruleConditions),
  }),
  z.strictObject({ field: zField, op: z.literal('glob'), pattern: zText }),
]);

/** Level by level, so that nothing is deeper than allowed. */
function ruleOfDepth(depth: number): z.ZodType {
  if (depth === 1) return zCondition;
  const parts = z
    .array(ruleOfDepth(depth - 1))
    .min(1)
    .max(LIMITS.ruleConditions);
  return z.union([zCondition, z.strictObject({ all: parts }), z.strictObject({ any: parts })]);
}

/** `PUT /collections/{id}/rule` */
export const zCollectionRule = ruleOfDepth(LIMITS.ruleDepth).refine(
  (rule) => countConditions(rule as CollectionRule) <= LIMITS.ruleConditions,
  `a rule has at most ${LIMITS.ruleConditions} conditions`,
) as z.ZodType<CollectionRule>;

function countConditions(rule: CollectionRule): number {
  if ('all' in rule) return rule.all.reduce((sum, part) => sum + countConditions(part), 0);
  if ('any' in rule) return rule.any.reduce((sum, part) => sum + countConditions(part), 0);
  return 1;
}
