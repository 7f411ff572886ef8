package jobs

import (
	"bytes"
	"sync"

	"github.com/starling-network/starling/web/answer"
)

// cache keeps the latest answers that are costly to make: thinning a long run takes milliseconds, and all readers of a
// run ask for the same.
type cache struct {
	mu      sync.Mutex
	answers map[string]cachedAnswer
}

type cachedAnswer struct {
	version uint64
	body    []byte
}

const maxCached = 64

// get returns the answer of a key as it was rendered last, or, for another version, renders it.
func (c *cache) get(key string, version uint64, render func() (any, error)) (any, error) {
	c.mu.Lock()
	a, ok := c.answers[key]
	c.mu.Unlock()
	if ok && a.version == version {
		return answer.Raw{Kind: answer.JSON, Bytes: a.body}, nil
	}
	v, err := render()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := answer.Encode(&b, v); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxCached {
		c.answers = map[string]cachedAnswer{}
	}
	c.answers[key] = cachedAnswer{version, b.Bytes()}
	return answer.Raw{Kind: answer.JSON, Bytes: b.Bytes()}, nil
}
