package chain

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/libs/service"
	"github.com/cometbft/cometbft/state"
)

// The log leaves out a client that disconnects, and keeps every other error, of any module.
func TestLogLeavesOutGoodbyes(t *testing.T) {
	var b bytes.Buffer
	l := withoutGoodbyes{cmtlog.NewTMLogger(&b)}.With("module", "rpc-server")
	l.Error("error while stopping connection", "error", service.ErrAlreadyStopped)
	l.Error("Failed to write response", "err", errors.New("websocket: close sent"), "msg", 1)
	l.Error("Stopped accept routine, as transport is closed", "numPeers", 0)
	l.Error("Failed to write response", "err", &net.OpError{Op: "write", Err: syscall.EPIPE}, "msg", 1)
	l.Error("Failed to read request", "err", &net.OpError{Op: "read", Err: net.ErrClosed})
	l.Error("failed to LoadFinalizeBlockResponse", "err", state.ErrNoABCIResponsesForHeight{Height: 118})
	if b.Len() > 0 {
		t.Error(b.String())
	}
	l.Error("Stopping peer for error", "err", &net.OpError{Op: "read", Err: syscall.ECONNRESET})
	if !strings.Contains(b.String(), "Stopping peer") {
		t.Error("nothing is said of a peer that is lost")
	}
	l.Error("Failed to write response", "err", errors.New("no room"))
	if s := b.String(); !strings.Contains(s, "no room") || !strings.Contains(s, "rpc-server") {
		t.Errorf("%q", s)
	}
}
