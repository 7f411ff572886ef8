package linked

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/replicated"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/dialogue"
	"github.com/starling-network/starling/node/triple"
)

// waits is for how long a client waits for an answer, which is longer than a party computes. Tests shorten it.
var waits = 3 * patient

// Client asks the parties of a model. It is for one goroutine at a time.
type Client struct {
	parties  [replicated.Parties]*dialogue.Dialogue
	Manifest triple.Manifest // of party 0

	Sent, Received int // bytes of shares
}

// Connect connects to the parties of a model, whose addresses are in their order. The caller closes the client.
func Connect(ctx context.Context, h *peer.Host, parties [replicated.Parties]string) (*Client, error) {
	if _, err := peers(parties); err != nil {
		return nil, err
	}
	c := &Client{}
	for i, addr := range parties {
		d, err := h.Dialogue(ctx, addr, protocol, about+16*replicated.MaxWords)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("%w: %w", ErrParty, err)
		}
		c.parties[i] = d
		m, err := manifest(ctx, d)
		switch {
		case err != nil:
		case m.Party != i:
			err = fmt.Errorf("%w: %s is party %d, and was given as party %d", ErrParty, addr, m.Party+1, i+1)
		case i == 0:
			c.Manifest = m
		case !m.Same(c.Manifest):
			err = fmt.Errorf("%w: %s has shares of another division or model", ErrParty, addr)
		}
		if err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

func manifest(ctx context.Context, d *dialogue.Dialogue) (triple.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, waits)
	defer cancel()
	b, err := ask(ctx, d, question{Kind: kindModel})
	if err != nil {
		return triple.Manifest{}, err
	}
	return triple.ReadManifest(b)
}

// Close ends the connections.
func (c *Client) Close() {
	for _, d := range c.parties {
		if d != nil {
			d.Close()
		}
	}
}

// ErrSize is returned for an image of another size than those of the model.
var ErrSize = errors.New("the image does not fit the model")

// Scores are those of the classes of an image, which the parties do not see.
func (c *Client) Scores(ctx context.Context, image picture.Picture) ([]float64, error) {
	if want := c.Manifest.Size(); image.Size != want {
		return nil, fmt.Errorf("%w: it is %v, and the model takes %v", ErrSize, image.Size, want)
	}
	ctx, cancel := context.WithTimeout(ctx, waits)
	defer cancel()
	var key prg.Key
	var of session
	_, _ = rand.Read(key[:]) // never fails
	_, _ = rand.Read(of[:])
	shares, n := replicated.Split(triple.Values(image), key), len(c.Manifest.Labels)
	var out [replicated.Parties]replicated.Vector
	var failed [replicated.Parties]error
	var all sync.WaitGroup
	for i, d := range c.parties {
		q := question{Kind: kindImage, Session: of}
		for k := range q.Shares {
			q.Shares[k] = replicated.Encode(shares[i][k])
			c.Sent, c.Received = c.Sent+len(q.Shares[k]), c.Received+8*n
		}
		all.Go(func() {
			var b []byte
			if b, failed[i] = ask(ctx, d, q); failed[i] != nil {
				return
			}
			var both []uint64
			if both, failed[i] = replicated.Decode(b, 2*n); failed[i] == nil {
				out[i] = replicated.Vector{both[:n], both[n:]}
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	values, err := replicated.Join(out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParty, err)
	}
	var scores []float64
	for _, v := range values {
		scores = append(scores, replicated.Float(v))
	}
	return scores, nil
}

// Dial is Connect from a host of its own. close ends the connections and the host.
func Dial(ctx context.Context, key peer.Key, parties [replicated.Parties]string) (c *Client, closes func(), err error) {
	h, err := peer.New(peer.Config{Key: key, Store: blob.NewMemory(),
		Standing: func(peer.ID) admission.Standing { return admission.Stranger }})
	if err != nil {
		return nil, nil, err
	}
	if c, err = Connect(ctx, h, parties); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w; this client has the peer ID %s", err, h.ID()), h.Close())
	}
	return c, func() { c.Close(); _ = h.Close() }, nil
}
