export { type ApiAnswer, type ApiClient, type ApiClientOptions, createApiClient } from './api-client.ts';
