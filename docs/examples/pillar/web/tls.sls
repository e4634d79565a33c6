tls_key: |
  -----BEGIN EXAMPLE-----
  bm90IGEga2V5
  -----END EXAMPLE-----
tls: {valid_until: 2027-01-31, strict: on}
