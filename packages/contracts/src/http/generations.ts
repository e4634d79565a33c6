import { z } from 'zod';

/** `POST /generations` */
export const zGenerationCreate = z
  .strictObject({ all: z.boolean('must be true or false').optional() })
  .optional();
