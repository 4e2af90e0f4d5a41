#!/usr/bin/env bash
# Writes the secrets of docker-compose.yml once; a second run keeps what is there.
# The folder is closed to others. The files are readable, because each container runs under a user of its own.
set -euo pipefail

folder=$(dirname "$0")/secrets
umask 077
mkdir -p "$folder"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# write NAME CONTENT
write() {
  [ -s "$folder/$1" ] || printf '%s' "$2" > "$folder/$1"
  chmod 0444 "$folder/$1"
}

write secret_key "$(random)$(random)"
write postgres_password "$(random)"
write redis_password "$(random)"
write database_url "postgresql://numaweb:$(cat "$folder/postgres_password")@postgres:5432/numaweb"
write redis_url "redis://:$(cat "$folder/redis_password")@redis:6379/0"
write redis_conf "requirepass $(cat "$folder/redis_password")
dir /data
appendonly yes
maxmemory-policy noeviction
"
echo "Secrets are in $folder; keep a copy of them with the backups of the database."
