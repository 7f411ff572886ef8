package release

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Question asks for the key of a shard, and those of others that the same unit reads. It is in canonical bytes.
type Question struct {
	Job    string `cbor:"1,keyasint"`
	Member string `cbor:"2,keyasint"` // account of the one that asks
	Public []byte `cbor:"3,keyasint"` // to which the answer is encrypted
	Shard  uint32 `cbor:"4,keyasint"`
}

// Answer is an envelope, or why there is none. It is in canonical bytes.
type Answer struct {
	Envelope []byte  `cbor:"1,keyasint,omitempty"` // as envelope.Enclose made it
	Refused  Refusal `cbor:"2,keyasint,omitempty"`
}

// Refusal is why a key is not released.
type Refusal string

// Refusals are part of the protocol.
const (
	NoUnit      Refusal = "RELEASE_NO_UNIT"      // the member executes no unit that reads the shard
	NoStake     Refusal = "RELEASE_NO_STAKE"     // its account has no stake, or is barred
	NotAttested Refusal = "RELEASE_NOT_ATTESTED" // the job wants an attested machine, and no quote of it holds
	OtherPeer   Refusal = "RELEASE_OTHER_PEER"   // the account is registered with another peer
	TooSoon     Refusal = "RELEASE_TOO_SOON"     // on probation, it has those of a unit whose deadline is not past
	NotYet      Refusal = "RELEASE_NOT_YET"      // the consumer does not follow the run, or cannot ask the network
)

// words explains a refusal.
var words = map[Refusal]string{
	NoUnit:      "this member executes no unit that reads the shard",
	NoStake:     "the account has no stake, or is barred",
	NotAttested: "the job wants attested machines, and no quote of this machine holds",
	OtherPeer:   "the account is registered with another peer than the one that asks",
	TooSoon:     "this member has got the keys of another unit for its probation, whose deadline is not past",
	NotYet:      "the consumer does not follow the run yet",
}

func (r Refusal) Error() string {
	if w := words[r]; w != "" {
		return w
	}
	return fmt.Sprintf("the consumer refuses: %.40q", string(r))
}

var errWire = errors.New("not a question or answer about keys")

// maxPublic is the bytes of a public key.
const maxPublic = 32

// ParseQuestion reads the question of a stranger.
func ParseQuestion(body []byte) (q Question, err error) {
	if len(body) > message.MaxBytes {
		return q, fmt.Errorf("release: %w: %d bytes", errWire, len(body))
	}
	if err := canon.Unmarshal(body, &q); err != nil {
		return q, fmt.Errorf("release: %w: %w", errWire, err)
	}
	if q.Job == "" || len(q.Job) > terms.MaxID || q.Member == "" || len(q.Member) > terms.MaxID ||
		len(q.Public) != maxPublic {
		return q, fmt.Errorf("release: %w", errWire)
	}
	return q, nil
}

// ParseAnswer reads the answer of a stranger: the keys that it has for this member, or a Refusal.
func ParseAnswer(body []byte, open func(sealed []byte) (envelope.Keys, error)) (envelope.Keys, error) {
	var a Answer
	if len(body) > message.MaxBytes {
		return nil, fmt.Errorf("release: %w: %d bytes", errWire, len(body))
	}
	if err := canon.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("release: %w: %w", errWire, err)
	}
	if a.Refused != "" {
		return nil, a.Refused
	}
	return open(a.Envelope)
}
