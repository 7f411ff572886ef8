package chain

import (
	"errors"

	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/libs/service"
)

// withoutGoodbyes is a log that leaves out what CometBFT calls an error whenever a client of its RPC says goodbye: it stops the
// connection twice.
type withoutGoodbyes struct{ cmtlog.Logger }

// Error implements cmtlog.Logger.
func (l withoutGoodbyes) Error(text string, pairs ...any) {
	if n := len(pairs); n > 0 && text == "error while stopping connection" {
		if err, ok := pairs[n-1].(error); ok && errors.Is(err, service.ErrAlreadyStopped) {
			return
		}
	}
	l.Logger.Error(text, pairs...)
}

// With implements cmtlog.Logger.
func (l withoutGoodbyes) With(pairs ...any) cmtlog.Logger {
	return withoutGoodbyes{l.Logger.With(pairs...)}
}
