// Package linked connects fronts and holders of the stages of a model by the network's hosts: both sides know each
// other by their peer IDs, and the bytes between them are encrypted.
package linked

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/dialogue"
	"github.com/starling-network/starling/node/layered"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/layered/wire"
)

// Times of a front.
const (
	answerTime = time.Minute      // for which a holder may compute
	waiting    = 20 * time.Second // for which a stage that no holder answers for is waited for
	skipped    = 2 * time.Second  // likewise, if texts may continue without it
	looking    = 3 * time.Second  // after which holders of a stage that is left out are asked again
)

// Serve answers the fronts with the given peer IDs until the context ends. ready gets the multiaddrs of the holder.
func Serve(ctx context.Context, h *layered.Holder, key peer.Key, listen, fronts []string, ready func([]string)) error {
	host, err := peer.New(peer.Config{Key: key, Store: blob.NewMemory(), Listen: listen,
		Standing: func(id peer.ID) admission.Standing {
			if slices.Contains(fronts, id.String()) {
				return admission.Member
			}
			return admission.Stranger
		}})
	if err != nil {
		return err
	}
	host.Converse(wire.Protocol, h.Longest(), func(from peer.ID) dialogue.Answerer {
		return h.Dialogue(from.String())
	})
	ready(host.Addrs())
	<-ctx.Done()
	return host.Close()
}

// Front is the side of a front.
type Front struct {
	Key      peer.Key
	Holders  []string // multiaddrs
	CheckPPM uint32   // as layered.Config has it
	Skip     bool     // texts continue without a stage that no holder answers for, if training left it out
	Log      *slog.Logger

	host *peer.Host
	line *layered.Line
}

// Stages connects to the stages of a model, as serve.Options has it. The caller closes the front.
func (f *Front) Stages(ctx context.Context) func(part.Manifest, section.Layout) (generate.Stages, error) {
	return func(m part.Manifest, l section.Layout) (_ generate.Stages, err error) {
		f.host, err = peer.New(peer.Config{Key: f.Key, Store: blob.NewMemory(),
			Standing: func(peer.ID) admission.Standing { return admission.Stranger }})
		if err != nil {
			return nil, err
		}
		c := layered.Config{Layout: l, Weights: m.Weights, Peers: f.Holders, Timeout: answerTime, Wait: waiting,
			CheckPPM: f.CheckPPM, Look: looking, Log: f.Log,
			Dial: func(ctx context.Context, addr string, longest int) (layered.Conversation, error) {
				d, err := f.host.Dialogue(ctx, addr, wire.Protocol, longest)
				if err != nil {
					return nil, err
				}
				return d, nil
			}}
		if f.Skip {
			c.Skips, c.Wait = m.Left, skipped
		}
		f.line, err = layered.Connect(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%w; this front has the peer ID %s", err, f.host.ID())
		}
		return f.line, nil
	}
}

// Close ends the connections.
func (f *Front) Close() error {
	if f.line != nil {
		f.line.Close()
	}
	if f.host == nil {
		return nil
	}
	return f.host.Close()
}
