base:
  '*':
    - common
  'web*':
    - web
  'web-1.example':
    - web.one
  'db-1.example,db-2.example':
    - match: list
    - db
