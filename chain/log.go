package chain

import (
	"errors"
	"net"
	"strings"
	"syscall"

	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/libs/service"
)

// withoutGoodbyes is a log that leaves out what CometBFT calls an error whenever a client of its RPC says goodbye, or
// the node stops: it stops connections twice, answers on one that is closed, and accepts none any more.
type withoutGoodbyes struct{ cmtlog.Logger }

// Error implements cmtlog.Logger.
func (l withoutGoodbyes) Error(text string, pairs ...any) {
	if strings.HasPrefix(text, "Stopped accept routine, as transport is closed") {
		return
	}
	for _, v := range pairs {
		err, ok := v.(error)
		if ok && (errors.Is(err, service.ErrAlreadyStopped) || err.Error() == "websocket: close sent" ||
			toClient[text] && hungUp(err)) {
			return
		}
	}
	l.Logger.Error(text, pairs...)
}

// toClient are the errors of connections to clients of the RPC. The log tells of peers that are lost.
var toClient = map[string]bool{"Failed to write response": true, "Failed to write ping": true,
	"Failed to read request": true}

// hungUp reports whether a connection has ended that one of its sides closed.
func hungUp(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// With implements cmtlog.Logger.
func (l withoutGoodbyes) With(pairs ...any) cmtlog.Logger {
	return withoutGoodbyes{l.Logger.With(pairs...)}
}
