package peer

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// ErrListen is returned for what is no address to listen on.
var ErrListen = errors.New("peer: no address to listen on")

// checkListen reports which of some addresses is none, or is taken by another process: hosts of go-libp2p share a TCP
// port without an error, and connections reach either of them.
func checkListen(addresses []string) error {
	for _, text := range addresses {
		a, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return fmt.Errorf("%w: %q: %w", ErrListen, text, err)
		}
		network, at, err := manet.DialArgs(a)
		if err != nil {
			return fmt.Errorf("%w: %q: %w", ErrListen, text, err)
		}
		if _, port, _ := net.SplitHostPort(at); port == "0" || !strings.HasPrefix(network, "tcp") {
			continue
		}
		l, err := net.Listen(network, at)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}
