#!/bin/sh
# Sends a customer's message, a batch and a CloudEvent to the gateway with curl.
# A gateway with producer keys asks for one at the CloudEvent: INTERLOCK_GATEWAY_KEY.
#
#     sh examples/producers/http_curl.sh http://127.0.0.1:8080
set -eu
gateway=${1:-http://127.0.0.1:8080}

# The key comes from a file descriptor: an argument could be read in the list of processes.
# Retries what did not answer and every 5xx; the ids in the body make that safe. --fail-with-body shows a refusal.
post() {
    curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 15 \
        --header @/dev/fd/3 --data-binary @- "$gateway$1" 3<<HEADERS
Content-Type: $2
${INTERLOCK_GATEWAY_KEY:+Authorization: Bearer $INTERLOCK_GATEWAY_KEY}
HEADERS
    echo
}

post /v1/events application/json <<'JSON'
{"id": "curl-1", "shop": "demo", "channel": "app", "sender": "c-curl",
 "body": {"kind": "message", "message_id": "m-1", "text": "Where is my order OD100008?"}}
JSON

# The second is refused (a score is 1 to 5): status 207, and the answer says so for that item alone.
post /v1/batch application/json <<'JSON'
{"shop": "demo", "channel": "app", "sender": "c-curl", "events": [
  {"id": "curl-2", "body": {"kind": "heartbeat"}},
  {"id": "curl-3", "body": {"kind": "rating", "score": 9}}]}
JSON

post /v1/cloudevents application/cloudevents+json <<'JSON'
{"specversion": "1.0", "id": "curl-4", "source": "/surveys", "type": "com.example.survey",
 "subject": "demo/app/c-curl", "data": {"kind": "rating", "thumb": "up"}}
JSON
