include:
  - .tls
  - common

nginx:
  workers: 8
motd: the first one
