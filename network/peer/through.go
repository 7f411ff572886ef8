package peer

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
)

// tunnelTimeout is how long a proxy may take to reach a peer.
const tunnelTimeout = 20 * time.Second

// through dials peers by way of an HTTP proxy at host:port (RFC 9110, section 9.3.6).
type through string

// dialer implements tcp.DialerForAddr.
func (p through) dialer(multiaddr.Multiaddr) (tcp.ContextDialer, error) { return p, nil }

// DialContext implements tcp.ContextDialer.
func (p through) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := net.ResolveTCPAddr(network, address) // it is an IP address: nothing is asked
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tunnelTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", string(p))
	if err != nil {
		return nil, fmt.Errorf("peer: the proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address,
		Header: http.Header{}}
	from := bufio.NewReader(conn)
	var answer *http.Response
	if err = request.Write(conn); err == nil {
		answer, err = http.ReadResponse(from, request)
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", answer.Status)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("peer: %s through the proxy: %w", address, err)
	}
	return &tunnel{Conn: conn, from: from, to: to}, nil
}

// tunnel is a connection to a peer through a proxy.
type tunnel struct {
	net.Conn
	from *bufio.Reader // may have read the first bytes of the peer
	to   net.Addr
}

// Read implements net.Conn.
func (t *tunnel) Read(p []byte) (int, error) { return t.from.Read(p) }

// RemoteAddr implements net.Conn: the peer, not the proxy.
func (t *tunnel) RemoteAddr() net.Addr { return t.to }
