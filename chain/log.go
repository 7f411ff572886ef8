package chain

import (
	"errors"
	"net"
	"strings"
	"syscall"

	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/libs/service"
	"github.com/cometbft/cometbft/state"
)

// withoutGoodbyes is a log that leaves out the errors that CometBFT logs whenever an RPC client disconnects or the node
// stops: connections stopped twice, writes to a closed connection, and a closed listener. It leaves out, too, that a
// client asked for the results of a block that is not executed yet: the client gets that error.
type withoutGoodbyes struct{ cmtlog.Logger }

// Error implements cmtlog.Logger.
func (l withoutGoodbyes) Error(text string, pairs ...any) {
	if strings.HasPrefix(text, "Stopped accept routine, as transport is closed") {
		return
	}
	for _, v := range pairs {
		if err, ok := v.(error); ok && usual(text, err) {
			return
		}
	}
	l.Logger.Error(text, pairs...)
}

// usual reports whether CometBFT logs an error though nothing is wrong.
func usual(text string, err error) bool {
	var early state.ErrNoABCIResponsesForHeight
	return errors.Is(err, service.ErrAlreadyStopped) || err.Error() == "websocket: close sent" ||
		toClient[text] && hungUp(err) || errors.As(err, &early)
}

// toClient are the errors of connections to RPC clients. Errors of connections to peers stay in the log.
var toClient = map[string]bool{"Failed to write response": true, "Failed to write ping": true,
	"Failed to read request": true}

// hungUp reports whether an error says that either side closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// With implements cmtlog.Logger.
func (l withoutGoodbyes) With(pairs ...any) cmtlog.Logger {
	return withoutGoodbyes{l.Logger.With(pairs...)}
}
