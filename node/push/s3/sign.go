package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Keys are the credentials of an account.
type Keys struct {
	Access, Secret string
	Session        string // token of temporary keys; "": they are none
}

const (
	algorithm = "AWS4-HMAC-SHA256"
	stamp     = "20060102T150405Z"
	noBody    = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of nothing
)

// sign adds the headers of signature version 4 to a request, whose path and query are encoded as encode and query do.
// body is the SHA-256 of its body in hexadecimal. The rules are those of "Authenticating Requests: Using the
// Authorization Header" in the API reference of Amazon S3.
func (k Keys) sign(r *http.Request, region, body string, now time.Time) {
	at := now.UTC().Format(stamp)
	r.Header.Set("X-Amz-Date", at)
	r.Header.Set("X-Amz-Content-Sha256", body)
	if k.Session != "" {
		r.Header.Set("X-Amz-Security-Token", k.Session)
	}
	names, lines := []string{"host"}, map[string]string{"host": r.URL.Host}
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if name == "user-agent" || name == "authorization" { // proxies change the first
			continue
		}
		names = append(names, name)
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		lines[name] = strings.Join(trimmed, ",")
	}
	slices.Sort(names)
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + lines[name] + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + body)

	scope := at[:8] + "/" + region + "/s3/aws4_request"
	sum := sha256.Sum256([]byte(canonical.String()))
	key := []byte("AWS4" + k.Secret)
	for _, part := range []string{at[:8], region, "s3", "aws4_request"} {
		key = mac(key, part)
	}
	signature := mac(key, algorithm+"\n"+at+"\n"+scope+"\n"+hex.EncodeToString(sum[:]))
	r.Header.Set("Authorization", algorithm+" Credential="+k.Access+"/"+scope+",SignedHeaders="+signed+",Signature="+
		hex.EncodeToString(signature))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// encode writes a text as a part of an address: letters, digits and -._~ stay; so do slashes, if slashes says so.
func encode(text string, slashes bool) string {
	out := url.QueryEscape(text) // it escapes all but letters, digits and -._~, and writes a blank as +
	out = strings.ReplaceAll(out, "+", "%20")
	if slashes {
		out = strings.ReplaceAll(out, "%2F", "/")
	}
	return out
}

// query writes parameters in the order of their names.
func query(of map[string]string) string {
	var parts []string
	for name, value := range of {
		parts = append(parts, encode(name, false)+"="+encode(value, false))
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}
