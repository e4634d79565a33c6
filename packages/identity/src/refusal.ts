import { ColonnadeError } from '@colonnade/contracts';
import { errors } from 'jose';

/**
 * Says which rule a JWT broke, so that an operator can help himself; nothing of the token is repeated.
 * @param subject what it is called, such as `the grant`
 * @param not what it is not, when it is no JWT or not signed as it should be: `is not a grant`
 */
export function explainRefusal(thrown: unknown, subject: string, not: string): ColonnadeError {
  const refuse = (why: string) => new ColonnadeError('unauthorized', `${subject} ${why}`);
  if (thrown instanceof ColonnadeError) return thrown;
  if (thrown instanceof errors.JWTExpired) return refuse('has expired');
  if (thrown instanceof errors.JWTClaimValidationFailed)
    return refuse(`has a wrong or missing "${thrown.claim}"`);
  if (thrown instanceof errors.JOSEError) return refuse(not);
  return new ColonnadeError('internal', `${subject} could not be checked`, { cause: thrown });
}
