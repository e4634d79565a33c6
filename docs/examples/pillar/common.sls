motd: managed
umask: 0022
ntp:
  servers: [ntp1.example, ntp2.example]
ssh:
  port: 22
  users: [ops]
  banner: yes
