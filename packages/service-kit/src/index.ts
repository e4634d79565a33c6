export { busSettings, logSettings, opsSettings } from './common-settings.ts';
export {
  type ConfigOf,
  optionalSecretSetting,
  optionalSetting,
  type Parse,
  readConfig,
  type Setting,
  type Settings,
  secretSetting,
  setting,
  settingsTable,
} from './config.ts';
export { acquireFileLock, type FileLock, fileMark, type Hold, watchHold } from './file-lock.ts';
export { createHealth, type Health, type Readiness } from './health.ts';
export { createLogger, LOG_LEVELS, type Logger, type LogLevel } from './logger.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { createOpsServer, type OpsAnswer, type OpsRoute, type OpsServer, opsRoutes } from './ops.ts';
export { oneOf, zBytesCount, zCount, zFlag, zMs, zPath, zPort, zSeconds, zText, zUrl } from './parsers.ts';
export { readPrivateFile, readPrivateText } from './private-file.ts';
export { type Running, runService } from './run-service.ts';
export { createSecret, type Secret } from './secret.ts';
