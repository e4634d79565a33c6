import { BlockList, isIP } from 'node:net';

/**
 * Addresses of nodes that may be connected to, from a list such as `10.0.0.0/24,fd00::/64,10.1.0.7`. Names are not
 * taken: what a name means is decided by whoever runs its DNS.
 * @throws Error that says what is not an address
 */
export function readAddresses(text: string): { check(address: string): boolean } {
  const list = new BlockList();
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [address = '', bits, ...rest] = entry.split('/');
    const version = isIP(address);
    const longest = version === 4 ? 32 : 128;
    const prefix = bits === undefined ? longest : /^\d{1,3}$/u.test(bits) ? Number(bits) : -1;
    if (version === 0 || rest.length > 0 || prefix < 0 || prefix > longest)
      throw new Error('must be addresses or networks such as 10.0.0.0/24, separated by commas');
    list.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6');
  }
  return {
    check(address) {
      const version = isIP(address);
      return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
    },
  };
}
