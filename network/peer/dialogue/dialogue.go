// Package dialogue is streams over which one peer asks and the other answers, in turn, as often as the first one wants.
// It does not know what questions and answers mean. A single small question is package message's.
package dialogue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/lifetime"
)

const (
	dialTime  = 10 * time.Second // to reach the peer that is asked
	frameTime = time.Minute      // to read a question that has begun, and to send an answer
	idleTime  = 10 * time.Minute // between two questions
	perPeer   = 4                // dialogues of one peer
	inAll     = 64
)

// ErrFrame is for a question or an answer that is longer than the other side takes.
var ErrFrame = errors.New("dialogue: a frame is too long")

// Dialogue is the side of the peer that asks. It is for one goroutine at a time.
type Dialogue struct {
	stream  network.Stream
	longest int // bytes of an answer
}

// Open opens a dialogue of a protocol with a peer, whose answers have at most a number of bytes. The caller closes it.
func Open(ctx context.Context, h host.Host, to peer.AddrInfo, of protocol.ID, longest int) (*Dialogue, error) {
	dial, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "a dialogue"), dialTime)
	defer cancel()
	if err := h.Connect(dial, to); err != nil {
		return nil, fmt.Errorf("dialogue: with %s: %w", to.ID, err)
	}
	s, err := h.NewStream(dial, to.ID, of)
	if err != nil {
		return nil, fmt.Errorf("dialogue: with %s: %w", to.ID, err)
	}
	return &Dialogue{stream: s, longest: longest}, nil
}

// Ask sends a question and returns the answer to it. After an error the dialogue is of no use.
func (d *Dialogue) Ask(ctx context.Context, question []byte) ([]byte, error) {
	defer context.AfterFunc(ctx, func() { _ = d.stream.Reset() })()
	err := write(d.stream, question)
	var answer []byte
	if err == nil {
		answer, err = read(d.stream, d.longest)
	}
	if err != nil {
		return nil, fmt.Errorf("dialogue: with %s: %w", d.stream.Conn().RemotePeer(), errors.Join(ctx.Err(), err))
	}
	return answer, nil
}

// Close ends the dialogue.
func (d *Dialogue) Close() { _ = d.stream.Reset() }

// write sends a frame: its length, and its bytes.
func write(w io.Writer, frame []byte) error {
	_, err := w.Write(binary.LittleEndian.AppendUint32(make([]byte, 0, 4), uint32(len(frame))))
	if err == nil {
		_, err = w.Write(frame)
	}
	return err
}

// read reads a frame of anybody: it takes no more memory than was sent.
func read(r io.Reader, longest int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	return body(r, binary.LittleEndian.Uint32(head[:]), longest)
}

func body(r io.Reader, n uint32, longest int) ([]byte, error) {
	if int64(n) > int64(longest) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, n, longest)
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, r, int64(n))
	return b.Bytes(), err
}

// Answerer answers the questions of one dialogue.
type Answerer interface {
	// Answer answers a question; nil ends the dialogue.
	Answer(question []byte) []byte
	// End is called when the dialogue has ended.
	End()
}

// Handler holds dialogues with peers that are admitted, whose questions have at most a number of bytes. Others, and
// those that have too many dialogues, are not read.
func Handler(life *lifetime.Lifetime, admits func(peer.ID) bool, longest int,
	begin func(from peer.ID) Answerer) network.StreamHandler {
	places := admission.NewPlaces(perPeer, inAll)
	return func(s network.Stream) {
		defer func() { _ = s.Reset() }()
		from := s.Conn().RemotePeer()
		if !life.Begin() {
			return
		}
		defer life.Done()
		if !admits(from) || !places.Take(from) {
			return
		}
		defer places.Free(from)
		defer context.AfterFunc(life.Context(), func() { _ = s.Reset() })()
		a := begin(from)
		defer a.End()
		for answerOne(s, longest, a) {
		}
	}
}

// answerOne reads a question and answers it.
func answerOne(s network.Stream, longest int, a Answerer) bool {
	_ = s.SetReadDeadline(time.Now().Add(idleTime))
	var head [4]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return false
	}
	_ = s.SetReadDeadline(time.Now().Add(frameTime))
	question, err := body(s, binary.LittleEndian.Uint32(head[:]), longest)
	if err != nil {
		return false
	}
	answer := a.Answer(question)
	if answer == nil {
		return false
	}
	_ = s.SetWriteDeadline(time.Now().Add(frameTime))
	return write(s, answer) == nil
}
