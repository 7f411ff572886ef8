package x402

import (
	"net/http"

	"github.com/starling-network/starling/node/untrusted"
)

// room is for what is in a header or a trailer next to a settlement, in bytes.
const room = 64 << 10

// NewClient returns a client for providers, at private addresses only if private is set. A connection reads its trailer
// through a buffer, which holds the largest settlement.
func NewClient(private bool) *http.Client {
	t := untrusted.NewTransport(private)
	t.ReadBufferSize, t.MaxResponseHeaderBytes = MaxSettlement+room, MaxSettlement+room
	return untrusted.NewClient(t)
}
