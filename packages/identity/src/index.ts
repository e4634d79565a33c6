export { isCompactToken } from './compact.ts';
export { createKeySet, type KeySet, type KeySetOptions, type VerifyKey } from './key-set.ts';
export { explainRefusal } from './refusal.ts';
export { createTaskView, type TaskView, type TaskViewOptions } from './task-view.ts';
export {
  createWorkloadCheck,
  createWorkloadVerifier,
  looksLikeWorkloadToken,
  type VerifyKeys,
  type WorkloadIdentity,
} from './verify.ts';
