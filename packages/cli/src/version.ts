/** Of the command; it goes with the repository. */
export const VERSION = '0.1.0';
