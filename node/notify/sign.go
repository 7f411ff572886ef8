package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// SecretVariable names the variable of the environment with the secret that events are signed with.
const SecretVariable = "STARLING_WEBHOOK_SECRET"

// ErrSecret is returned for a secret that is not written as the specification of Standard Webhooks says.
var ErrSecret = errors.New("notify: " + SecretVariable + " is no secret of Standard Webhooks")

// secretPrefix begins a secret in its written form; base64 of 24 to 64 bytes follows.
const secretPrefix = "whsec_"

// Secret reads the secret of the environment: nil if there is none. The error wraps ErrSecret.
func Secret() ([]byte, error) {
	text := os.Getenv(SecretVariable)
	if text == "" {
		return nil, nil
	}
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(secret) < 24 || len(secret) > 64 {
		return nil, fmt.Errorf("%w: want %s and the base64 of 24 to 64 bytes; echo %s$(openssl rand -base64 32) makes one",
			ErrSecret, secretPrefix, secretPrefix)
	}
	return secret, nil
}

// sign adds the identifier of an event, the time and, with a secret, the signature over both and the body, as version
// v1 of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md)
// defines them.
func sign(h http.Header, secret []byte, id string, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", seconds)
	if secret == nil {
		return
	}
	m := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(m, "%s.%s.%s", id, seconds, body) // to memory
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
}
