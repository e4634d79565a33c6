import { PROBLEM_MEDIA_TYPE, zProblem } from '@colonnade/contracts';
import { z } from 'zod';
import type { Route } from '../http/route.ts';
import { type Example, fillBody, shownInBody, shownSample } from './example.ts';
import { EXAMPLES } from './examples.ts';

type Json = Record<string, unknown>;

/**
 * OpenAPI 3.1 of these routes: from the schemas that requests and answers are checked with, so it cannot say anything
 * else than what is done.
 */
export function buildOpenApi(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/gu, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Colonnade',
      version: '1',
      summary: 'Pillar data of a Salt estate, its secrets sealed',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'Bodies are JSON in UTF-8; integers stay integers and floats stay floats (`1` is not `1.0`). Changes need If-Match with the ETag that was read. ' +
        'Errors are application/problem+json (RFC 9457) with a stable `code`. Ids hold no `:`, `;`, `,` and no control characters.',
    },
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: { Problem: schemaOf(zProblem) },
      headers: HEADERS,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API token (`col_<id>_<secret>`), or a JWT of the configured OpenID Connect issuer.',
        },
      },
    },
  };
}

/** Routes nobody has written an example for. */
export function routesWithoutExample(routes: readonly Route[]): readonly string[] {
  const known = new Set(EXAMPLES.map(({ route }) => route));
  return routes.map(nameOf).filter((name) => !known.has(name));
}

function nameOf({ method, url }: Route): string {
  return `${method} ${url}`;
}

const HEADERS = {
  ETag: { description: 'Of the record as it is now; for If-Match.', schema: { type: 'string' } },
  'Audit-ID': { description: 'Names the audit record of this request.', schema: { type: 'string' } },
  'RateLimit-Remaining': {
    description: 'Requests that may follow at once.',
    schema: { type: 'integer' },
  },
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
};

function operationOf(route: Route): Json {
  const example = EXAMPLES.find((one) => one.route === nameOf(route));
  const { body, idempotency } = route.docs;
  const parameters = parametersOf(route, example);
  const tag = route.url.split('/')[1] ?? '';
  return {
    operationId: `${route.method.toLowerCase()}${route.url.replace(/[^a-z]+(\w?)/giu, (_, c: string) => c.toUpperCase())}`,
    tags: [tag],
    summary: example?.summary ?? nameOf(route),
    description: describe(route, idempotency),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.accepts === undefined ? requestBodyOf(body, example) : streamOf(route.accepts)),
    responses: {
      [String(example?.status ?? '2XX')]: answerOf(route.docs, example),
      ...(example?.otherStatus === undefined
        ? {}
        : { [String(example.otherStatus)]: answerOf(route.docs, undefined) }),
      default: {
        description: 'A problem',
        headers: headerRefs('Audit-ID', 'Retry-After'),
        content: { [PROBLEM_MEDIA_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

const SCOPES = {
  target: 'in whose scope what it touches is',
  estate: 'for the whole estate',
  none: 'in any scope',
} as const;

function describe({ permission, scope, audit }: Route, idempotency: Route['docs']['idempotency']): string {
  const record = audit.floor === true ? ' Always on record.' : '';
  const key = idempotency === 'kept' ? ' Takes an Idempotency-Key.' : '';
  return `Needs the permission \`${permission}\`, of a role ${SCOPES[scope]}.${record}${key}`;
}

function parametersOf({ url, docs }: Route, example: Example | undefined): Json[] {
  const inPath = [...url.matchAll(/:(\w+)/gu)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string', minLength: 1 } },
    ...(example?.params?.[name] === undefined ? {} : { example: shownSample(example.params[name]) }),
  }));
  const query = schemaOf(docs.query) as { properties?: Record<string, Json>; required?: string[] };
  const inQuery = Object.entries(query.properties ?? {}).map(([name, schema]) => ({
    ...{ name, in: 'query', required: query.required?.includes(name) === true, schema },
    ...(example?.query?.[name] === undefined ? {} : { example: shownSample(example.query[name]) }),
  }));
  const headers: Json[] = [];
  if (example?.ifMatch !== undefined) headers.push(header('If-Match', 'The ETag that was read, or `*`.'));
  if (example?.ifNoneMatch === true)
    headers.push(header('If-None-Match', '`*`: makes what is not there yet.'));
  if (docs.idempotency === 'kept')
    headers.push(header('Idempotency-Key', 'The same answer to the same request.'));
  if (docs.mediaType === 'text/event-stream') {
    headers.push(header('Last-Event-ID', 'Goes on after this event.'));
  }
  return [...inPath, ...inQuery, ...headers];
}

function header(name: string, description: string): Json {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}

function requestBodyOf(body: z.ZodType, example: Example | undefined): Json {
  const schema = schemaOf(body);
  if (isNothing(schema)) return {};
  const required = !body.safeParse(undefined).success;
  const shown = example?.body === undefined ? undefined : fillBody(example.body, shownInBody);
  const sample = shown === undefined ? {} : { example: shown };
  return { requestBody: { required, content: { 'application/json': { schema, ...sample } } } };
}

/** A body that is read as it arrives: text, whose records the README describes. */
function streamOf(mediaTypes: readonly string[]): Json {
  return { requestBody: { required: true, content: textOf(mediaTypes) } };
}

function textOf(mediaTypes: readonly string[]): Json {
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: { type: 'string' } }]));
}

function answerOf({ response, mediaType, streams }: Route['docs'], example: Example | undefined): Json {
  const schema = schemaOf(response);
  const headers = headerRefs('ETag', 'Audit-ID', 'RateLimit-Remaining');
  const description = example?.status === 201 ? 'Made' : 'Done';
  if (streams !== undefined) return { description, headers, content: textOf(streams) };
  if (isNothing(schema)) return { description, headers };
  return { description, headers, content: { [mediaType]: { schema } } };
}

function headerRefs(...names: readonly (keyof typeof HEADERS)[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function isNothing(schema: Json): boolean {
  return schema.type === 'object' && Object.keys((schema.properties ?? {}) as object).length === 0;
}

/** The wire form of a schema: `int()` is a JSON integer with its bounds, a value is anything. */
function schemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type !== 'bigint') return;
      const { minimum, maximum } = zodSchema._zod.bag as { minimum?: bigint; maximum?: bigint };
      jsonSchema.type = 'integer';
      if (minimum !== undefined) jsonSchema.minimum = Number(minimum);
      if (maximum !== undefined) jsonSchema.maximum = Number(maximum);
    },
  });
  return rest as Json;
}
