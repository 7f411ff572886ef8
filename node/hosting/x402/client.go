package x402

import (
	"net/http"
	"time"
)

// room is for what is in a header or a trailer next to a settlement, in bytes.
const room = 64 << 10

// NewClient returns a client for servers of strangers. It follows no redirection, which would send a request to a
// machine of the server's choice, such as one that only the client reaches. A connection reads its trailer through a
// buffer, which holds the largest settlement.
func NewClient() *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
		ReadBufferSize: MaxSettlement + room, MaxResponseHeaderBytes: MaxSettlement + room}
	return &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
