package weights

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/peer/message"
)

// Protocol asks a peer for the next patch on a way from a version of weights to another. Question and answer are
// canonical bytes, and the patch itself is fetched as blobs: its head, and its pieces.
const Protocol = "/starling/weights/1"

const (
	maxChildren = 2 // peers to which one that gets a patch sends it; one that made it sends it to one
	maxFailed   = 8 // of a question
	maxIDBytes  = 64
)

// errWire is wrapped by every reason why bytes are no question or answer.
var errWire = errors.New("not a question or answer about weights")

// question asks for a way between two versions.
type question struct {
	From   canon.Digest `cbor:"1,keyasint"`
	To     canon.Digest `cbor:"2,keyasint"`
	Serves bool         `cbor:"3,keyasint"`           // the asking peer sends to others what it gets
	Failed [][]byte     `cbor:"4,keyasint,omitempty"` // peers of an earlier answer that did not give the patch
}

// answer names the first patch on the way.
type answer struct {
	Known bool         `cbor:"1,keyasint"`
	To    canon.Digest `cbor:"2,keyasint"`           // the version to which the patch leads
	Head  canon.Digest `cbor:"3,keyasint"`           // of the patch: SHA-256 of its bytes
	Bytes uint64       `cbor:"4,keyasint"`           // of the head and the pieces
	Total uint64       `cbor:"5,keyasint"`           // of all patches on the way
	Ask   [][]byte     `cbor:"6,keyasint,omitempty"` // peers that have the patch, or are getting it; none: this one
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
	return parse(body, func(q *question) bool { return peers(q.Failed, maxFailed) && q.From != q.To })
}

func parseAnswer(body []byte) (*answer, error) {
	return parse(body, func(a *answer) bool { return peers(a.Ask, maxChildren) && a.Bytes <= a.Total })
}

// peers reports whether a list has at most as many IDs of peers.
func peers(list [][]byte, most int) bool {
	for _, id := range list {
		if len(id) == 0 || len(id) > maxIDBytes || peer.ID(id).Validate() != nil {
			return false
		}
	}
	return len(list) <= most
}
