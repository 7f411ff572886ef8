package weights

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/peer/message"
)

// Protocol asks a peer for the patch from a version of weights to another. Question and answer are canonical bytes, and
// the patch itself is fetched as blobs: its head, and its pieces.
const Protocol = message.Weights

const (
	maxChildren = 2 // peers to which one that gets a patch sends it; one that made it sends it to one
	maxIDBytes  = 64
)

// errWire is wrapped by every reason why bytes are no question or answer.
var errWire = errors.New("not a question or answer about weights")

// question asks for the patch between two versions.
type question struct {
	From   canon.Digest `cbor:"1,keyasint"`
	To     canon.Digest `cbor:"2,keyasint"`
	Serves bool         `cbor:"3,keyasint"` // the asking peer sends to others what it gets
	Failed bool         `cbor:"4,keyasint"` // a peer that an earlier answer named did not give the patch
}

// answer names a patch.
type answer struct {
	Known  bool         `cbor:"1,keyasint"`           // else the fields from Head on are empty
	Making bool         `cbor:"2,keyasint"`           // not known yet, and being made
	Head   canon.Digest `cbor:"3,keyasint"`           // of the patch: SHA-256 of its bytes
	Bytes  uint64       `cbor:"4,keyasint"`           // of the head and the pieces
	Ask    [][]byte     `cbor:"5,keyasint,omitempty"` // peers that have the patch, or are getting it; none: this one
}

// parse reads a question or an answer of a stranger, in the one form that it has.
func parse[T any](body []byte, check func(*T) bool) (*T, error) {
	v := new(T)
	if len(body) > message.MaxBytes {
		return nil, fmt.Errorf("weights: %w: %d bytes", errWire, len(body))
	}
	if err := canon.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("weights: %w: %w", errWire, err)
	}
	if !check(v) {
		return nil, fmt.Errorf("weights: %w", errWire)
	}
	return v, nil
}

func parseQuestion(body []byte) (*question, error) {
	return parse(body, func(q *question) bool { return q.From != q.To })
}

// parseAnswer reads the answer of a peer, which names neither itself nor another one twice.
func parseAnswer(by peer.ID, body []byte) (*answer, error) {
	return parse(body, func(a *answer) bool {
		named := map[peer.ID]bool{by: true}
		for _, id := range a.Ask {
			if len(id) == 0 || len(id) > maxIDBytes || peer.ID(id).Validate() != nil || named[peer.ID(id)] {
				return false
			}
			named[peer.ID(id)] = true
		}
		return len(a.Ask) <= maxChildren && (a.Known || a.Bytes == 0 && len(a.Ask) == 0)
	})
}
