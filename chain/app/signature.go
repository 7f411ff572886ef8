package app

import (
	"context"
	"sync"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/canon"
)

// signatures remembers which signatures were found right, so that one that was verified when its transaction came is not
// verified again when a block has it. What is remembered is a digest of all that the answer depends on, the key, what is signed
// and the signature: the answer is the same whether it is remembered or not. Only right ones are remembered, so that what is
// forgotten for others has cost somebody an account and a signature.
type signatures struct {
	mu          sync.Mutex
	now, before map[canon.Digest]struct{}
}

// generation is how many signatures are remembered before those of the generation before them are forgotten: more than the
// pool of transactions holds.
const generation = 1 << 13

func newSignatures() *signatures { return &signatures{now: map[canon.Digest]struct{}{}} }

func (s *signatures) known(d canon.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, now := s.now[d]
	_, before := s.before[d]
	return now || before
}

func (s *signatures) remember(d canon.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) >= generation {
		s.now, s.before = map[canon.Digest]struct{}{}, s.now
	}
	s.now[d] = struct{}{}
}

// verifying are the accounts as the SDK's verification of signatures sees them: with keys that remember. Keys of other kinds,
// and those of many together, are as they are.
type verifying struct {
	ante.AccountKeeper
	seen *signatures
}

// GetAccount implements ante.AccountKeeper.
func (v verifying) GetAccount(ctx context.Context, address sdk.AccAddress) sdk.AccountI {
	a := v.AccountKeeper.GetAccount(ctx, address)
	if a == nil {
		return nil
	}
	k, ok := a.GetPubKey().(*secp256k1.PubKey)
	if !ok {
		return a
	}
	return holder{a, key{k, v.seen}}
}

// holder is an account with a key that remembers.
type holder struct {
	sdk.AccountI
	key key
}

// GetPubKey implements sdk.AccountI.
func (h holder) GetPubKey() cryptotypes.PubKey { return h.key }

// key is a key that remembers what it verified.
type key struct {
	*secp256k1.PubKey
	seen *signatures
}

// XXX_MessageName is what the key is called on the wire, where it is the key that it holds.
func (k key) XXX_MessageName() string { return proto.MessageName(k.PubKey) }

// VerifySignature implements cryptotypes.PubKey.
func (k key) VerifySignature(text, signature []byte) bool {
	d := canon.Sum("starling/signature/1", k.Key, text, signature)
	if k.seen.known(d) {
		return true
	}
	if !k.PubKey.VerifySignature(text, signature) {
		return false
	}
	k.seen.remember(d)
	return true
}
