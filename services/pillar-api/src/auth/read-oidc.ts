import { ColonnadeError } from '@colonnade/contracts';
import type { PillarApiConfig } from '../config.ts';
import { createOidc, type Oidc } from './oidc.ts';
import { readGroupRoles } from './oidc-roles.ts';

/** The issuer of the settings, when there is one. @throws ColonnadeError `misconfigured` */
export function readOidc(config: PillarApiConfig): Oidc | undefined {
  const { oidcIssuer: issuer, oidcAudience: audience, oidcRolesFile: rolesFile } = config;
  if (issuer === undefined && audience === undefined && rolesFile === undefined) return undefined;
  if (issuer === undefined || audience === undefined || rolesFile === undefined) {
    const why = 'OIDC_ISSUER, OIDC_AUDIENCE and OIDC_ROLES_FILE are set together or not at all';
    throw new ColonnadeError('misconfigured', why);
  }
  return createOidc({
    ...{ issuer, audience, algorithms: config.oidcAlgorithms, groupRoles: readGroupRoles(rolesFile) },
    ...{
      subClaim: config.oidcSubClaim,
      groupsClaim: config.oidcGroupsClaim,
      maxAgeS: config.oidcMaxTokenAgeS,
    },
  });
}
