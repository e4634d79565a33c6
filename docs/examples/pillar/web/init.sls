#!yaml
log_format: "{{ time }} {{ path }}"
nginx: {workers: 4, ports: [80, 443]}
ssh:
  users: [ops, web]
