export type MinionName = { master: string; id: string };

/** As it stands in the tables, in records and in failures. */
export const nameOf = ({ master, id }: MinionName) => `${master}/${id}`;
/** Neither id can hold a slash. */
export const minionNamed = (name: string): MinionName => {
  const [master = '', id = ''] = name.split('/');
  return { master, id };
};
