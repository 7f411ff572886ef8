// Package access decides whether a request may be made: by the bearer tokens of a server and their scopes, and by where
// the request comes from, so that a page of another origin in the same browser can do nothing. It answers no request.
package access

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/failure"
)

// Scopes of tokens.
const (
	Read   = "read"   // look at everything
	Submit = "submit" // start and cancel jobs
)

// Tokens are bearer tokens and what each of them allows.
type Tokens struct{ list []bearer }

type bearer struct {
	digest [32]byte // of the token: it is compared, and kept, in no other form
	scopes []string
	limits map[string]uint64
}

// Caller is the sender of a request, as far as its token tells.
type Caller struct {
	Token string // name of the token that is not the token itself; "": the server asks for none
	// what all jobs of the token may cost together, by the symbol of their coin, "" of ZEN, in millionths of the coin;
	// nil: as much as there is, else nothing of a coin that it lacks
	Limits map[string]uint64
}

type callerKey struct{}

// CallerOf is the sender of the request of a context that Allow returned.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// limitPrefix begins the amounts that the jobs of a token may cost.
const limitPrefix = "limit="

// Limits of files of tokens.
const (
	maxTokenFile   = 64 << 10
	minTokenLength = 16
)

// ReadTokens reads a file of tokens: one a line, followed by its scopes, as in "3f9c...a1 read,submit", and by the
// amount that its jobs may cost together in each coin, as in "3f9c...a1 read,submit limit=25,10usdc": 25 ZEN, 10 USDC,
// and nothing of another coin. Without an amount there is no limit.
// Empty lines, and those that begin with #, are skipped. A file that others than its owner can read is refused.
func ReadTokens(path string) (*Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("web: tokens: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("web: others can read %s: run chmod 600 on it", path)
	}
	t, err := ParseTokens(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, fmt.Errorf("web: %s: %w", path, err)
	}
	return t, nil
}

// ParseTokens reads tokens in the form of ReadTokens.
func ParseTokens(r io.Reader) (*Tokens, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(text) > maxTokenFile {
		return nil, fmt.Errorf("a file of tokens has at most %d bytes", maxTokenFile)
	}
	t, lines := &Tokens{}, bufio.NewScanner(strings.NewReader(string(text)))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 || len(fields) > 3 || len(fields[0]) < minTokenLength {
			return nil, fmt.Errorf("line %d is not a token of at least %d characters and its scopes, such as read,submit, with "+
				"limit=AMOUNTS after them if its jobs may cost only so much", n, minTokenLength)
		}
		entry := bearer{digest: sha256.Sum256([]byte(fields[0])), scopes: strings.Split(fields[1], ",")}
		for _, s := range entry.scopes {
			if s != Read && s != Submit {
				return nil, fmt.Errorf("line %d: there is no scope %q: they are %s and %s", n, s, Read, Submit)
			}
		}
		if len(fields) == 3 {
			if entry.limits = limitsOf(fields[2]); entry.limits == nil {
				return nil, fmt.Errorf("line %d: %q is not the limit of a token: give one such as limit=25, in ZEN, or "+
					"limit=25,10usdc, each coin once", n, fields[2])
			}
		}
		t.list = append(t.list, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t.list) == 0 {
		return nil, fmt.Errorf("there is no token in it")
	}
	return t, nil
}

// Number is how many tokens have a scope.
func (t *Tokens) Number(scope string) (n int) {
	if t == nil {
		return 0
	}
	for _, b := range t.list {
		if slices.Contains(b.scopes, scope) {
			n++
		}
	}
	return n
}

// limitsOf reads limits such as limit=25,10usdc, by the symbols of the coins; nil: they are none.
func limitsOf(text string) map[string]uint64 {
	list, named := strings.CutPrefix(text, limitPrefix)
	if !named {
		return nil
	}
	limits := map[string]uint64{}
	for part := range strings.SplitSeq(list, ",") {
		number, symbol, ok := coin.Split(part)
		amount, err := quantity.ParseAmount(number)
		if _, twice := limits[symbol]; !ok || err != nil || twice {
			return nil
		}
		limits[symbol] = uint64(amount)
	}
	return limits
}

// keyHeader has the token of clients of the Tinker API.
const keyHeader = "X-API-Key"

// Allow returns why a request may not do what needs a scope, or its context with the caller. Without tokens every
// request may do everything.
func (t *Tokens) Allow(ctx context.Context, r *http.Request, scope string) (context.Context, error) {
	if t == nil || scope == "" {
		return ctx, nil
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key := r.Header.Get(keyHeader); key != "" && r.Header.Get("Authorization") == "" {
		given, ok = key, true
	}
	if !ok {
		return nil, failure.New(http.StatusUnauthorized, "TOKEN_NEEDED", "the server answers to those who have a token",
			"send Authorization: Bearer TOKEN, with a token of the server's --token-file")
	}
	digest := sha256.Sum256([]byte(given))
	var found *bearer
	for i := range t.list {
		if subtle.ConstantTimeCompare(digest[:], t.list[i].digest[:]) == 1 {
			found = &t.list[i]
		}
	}
	switch {
	case found == nil:
		return nil, failure.New(http.StatusUnauthorized, "TOKEN_UNKNOWN", "the server does not know the token",
			"send one of the server's --token-file")
	case !slices.Contains(found.scopes, scope):
		return nil, failure.New(http.StatusForbidden, "SCOPE_MISSING", "the token does not have the scope "+scope,
			"use a token that has it, or add it to this one's line")
	}
	return context.WithValue(ctx, callerKey{},
		Caller{Token: hex.EncodeToString(digest[:8]), Limits: found.limits}), nil
}
