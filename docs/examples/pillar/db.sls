db_password: correct horse
ssh:
  port: 2222
