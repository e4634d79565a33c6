import type { Session } from '../session.ts';

/** One option of a command. Without `value` it is a flag. */
export type OptionSpec = {
  help: string;
  short?: string;
  /** What stands for its value in the help, such as `ID`. */
  value?: string;
  choices?: readonly string[];
  required?: true;
  /** May be given several times. */
  repeat?: true;
};

export type ArgumentSpec = { help: string; optional?: true; repeat?: true };

type OptionValue<O extends OptionSpec> = O extends { repeat: true }
  ? readonly string[]
  : O extends { value: string }
    ? O extends { required: true }
      ? string
      : string | undefined
    : boolean;
type ArgumentValue<A extends ArgumentSpec> = A extends { repeat: true }
  ? readonly string[]
  : A extends { optional: true }
    ? string | undefined
    : string;

export type Options<O extends Record<string, OptionSpec>> = { [K in keyof O]: OptionValue<O[K]> };
export type Arguments<A extends Record<string, ArgumentSpec>> = { [K in keyof A]: ArgumentValue<A[K]> };

/** What a person gave, as read from the command line. */
export type Given = {
  args: Readonly<Record<string, string | readonly string[] | undefined>>;
  options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
};

/** One command as everything else sees it: help, completion, README and tests are made from these. */
export type Command = {
  /** Its words, such as `['pillar', 'list']`. */
  path: readonly string[];
  summary: string;
  /** More for the help: what it does not do, where its input comes from. */
  details?: string;
  args: Readonly<Record<string, ArgumentSpec>>;
  options: Readonly<Record<string, OptionSpec>>;
  /** Command lines that work, without the word `colonnade`; at least one. */
  examples: readonly (readonly [line: string, what: string])[];
  /** @returns its exit code; 0 unless it says otherwise. @throws ColonnadeError */
  run(session: Session, given: Given): Promise<number> | Promise<void>;
};

type Definition<A extends Record<string, ArgumentSpec>, O extends Record<string, OptionSpec>> = {
  path: string;
  summary: string;
  details?: string;
  args?: A;
  options?: O;
  examples: Command['examples'];
  run(session: Session, given: { args: Arguments<A>; options: Options<O> }): Promise<number> | Promise<void>;
};

/** A command whose `run` gets exactly the arguments and options it names. */
export function defineCommand<
  const A extends Record<string, ArgumentSpec> = Record<never, never>,
  const O extends Record<string, OptionSpec> = Record<never, never>,
>({ path, args, options, run, ...rest }: Definition<A, O>): Command {
  return {
    ...rest,
    path: path.split(' '),
    args: args ?? {},
    options: options ?? {},
    run: (session, given) => run(session, given as never),
  };
}
