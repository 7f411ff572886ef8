// Package message asks a peer a small question and gets a small answer, over a stream that ends with the answer. It
// does not know what they mean: each protocol has its own.
package message

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/wire"
)

// MaxBytes is the size of a question, and of an answer.
const MaxBytes = 4096

// Weights is the protocol of questions about versions of weights (network/weights).
const Weights = "/starling/weights/1"

// Keys is the protocol of questions about keys of encrypted shards (node/release).
const Keys = "/starling/keys/1"

const (
	dialTime     = 5 * time.Second  // to reach the peer that is asked
	questionTime = 5 * time.Second  // to read a question
	answerTime   = 30 * time.Second // to get its answer
	atOnce       = 16               // questions of all peers that a host answers at the same time
	atOncePeer   = 2                // questions of one peer that a host reads or answers at the same time
)

// Answerer answers the question of a peer; nil: it has no answer.
type Answerer func(ctx context.Context, from peer.ID, question []byte) []byte

// Ask asks a peer: wire.ErrRefused if it does not answer questions of this protocol now.
func Ask(ctx context.Context, h host.Host, to peer.AddrInfo, of protocol.ID, question []byte) ([]byte, error) {
	dial, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "a question"), dialTime)
	defer cancel()
	if err := h.Connect(dial, to); err != nil {
		return nil, fmt.Errorf("peer: ask %s: %w", to.ID, err)
	}
	s, err := h.NewStream(dial, to.ID, of)
	if err != nil {
		return nil, fmt.Errorf("peer: ask %s: %w", to.ID, err)
	}
	defer func() { _ = s.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	_ = s.SetDeadline(time.Now().Add(answerTime))
	if _, err = s.Write(question); err == nil {
		err = s.CloseWrite()
	}
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(s, MaxBytes+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("peer: ask %s: %w", to.ID, err)
	case len(answer) == 0:
		return nil, fmt.Errorf("peer: ask %s: %w", to.ID, wire.ErrRefused)
	case len(answer) > MaxBytes:
		return nil, fmt.Errorf("peer: ask %s: an answer of more than %d bytes: %w", to.ID, MaxBytes, wire.ErrHostile)
	}
	return answer, nil
}

// Handler answers the questions of a protocol that admitted peers ask, some at a time and fewer of one peer: others are
// not read, and have no answer.
func Handler(life *lifetime.Lifetime, admits func(peer.ID) bool, answer Answerer) network.StreamHandler {
	slots := make(chan struct{}, atOnce)
	places := admission.NewPlaces(atOncePeer, math.MaxInt) // of all peers, slots bounds those that are answered
	return func(s network.Stream) {
		if !life.Begin() {
			_ = s.Reset()
			return
		}
		defer life.Done()
		defer func() { _ = s.Close() }()
		id := s.Conn().RemotePeer()
		if !admits(id) || !places.Take(id) {
			return
		}
		defer places.Free(id)
		_ = s.SetDeadline(time.Now().Add(questionTime))
		question, err := io.ReadAll(io.LimitReader(s, MaxBytes+1))
		if err != nil || len(question) > MaxBytes {
			_ = s.Reset()
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			return
		}
		defer func() { <-slots }()
		b := answer(life.Context(), id, question)
		_ = s.SetDeadline(time.Now().Add(questionTime))
		if _, err := s.Write(b); err != nil {
			_ = s.Reset()
		}
	}
}
