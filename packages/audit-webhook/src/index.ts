export { fitEvent, type Item, type SizeLimits, splitLists } from './batch.ts';
export { createReloadingPoster, type ReloadingPoster } from './reloading-poster.ts';
export { type SendOptions, sendList } from './send.ts';
export { createThrottle } from './throttle.ts';
export { truncateEvent } from './truncate.ts';
