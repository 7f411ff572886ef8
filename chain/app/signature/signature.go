// Package signature remembers which signatures of transactions are valid, so that a signature that was verified when
// its transaction entered the pool is not verified again when a block contains it. It refuses nothing: a signature that
// it does not remember is verified with the key.
package signature

import (
	"context"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/canon"
)

// Memory remembers which signatures were found right, so that one that was verified when its transaction came is
// not verified again when a block has it. What is remembered is a digest of all that the answer depends on, the key,
// what is signed and the signature: the answer is the same whether it is remembered or not. Only right ones are
// remembered, so that what is forgotten for others has cost somebody an account and a signature.
//
// It also remembers the numbers of accounts, which are signed and never change, by their keys. With them it verifies
// transactions before it is their turn.
type Memory struct {
	right   recent[canon.Digest, struct{}]
	numbers recent[string, uint64]
}

// Early verifies the signature of a transaction of one signer whose account is remembered. It decides nothing: what it
// passes over or finds wrong is verified when it is its turn.
func (s *Memory) Early(chain string, transaction []byte) {
	var raw tx.TxRaw
	var auth tx.AuthInfo
	if raw.Unmarshal(transaction) != nil || len(raw.Signatures) != 1 || auth.Unmarshal(raw.AuthInfoBytes) != nil ||
		len(auth.SignerInfos) != 1 {
		return
	}
	signer := auth.SignerInfos[0]
	if signer.PublicKey == nil || signer.ModeInfo.GetSingle().GetMode() != signing.SignMode_SIGN_MODE_DIRECT {
		return
	}
	var k secp256k1.PubKey
	if signer.PublicKey.TypeUrl != "/"+proto.MessageName(&k) || k.Unmarshal(signer.PublicKey.Value) != nil {
		return
	}
	number, ok := s.numbers.get(string(k.Key))
	if !ok {
		return
	}
	text, err := (&tx.SignDoc{BodyBytes: raw.BodyBytes, AuthInfoBytes: raw.AuthInfoBytes, ChainId: chain,
		AccountNumber: number}).Marshal()
	if err == nil {
		key{&k, s}.VerifySignature(text, raw.Signatures[0])
	}
}

// Accounts are the accounts as the SDK's verification of signatures sees them, with keys that remember.
func (s *Memory) Accounts(k ante.AccountKeeper) ante.AccountKeeper { return verifying{k, s} }

// verifying are accounts with keys that remember. Keys of other kinds, and those of many together, are as they are.
type verifying struct {
	ante.AccountKeeper
	seen *Memory
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
	v.seen.numbers.put(string(k.Key), a.GetAccountNumber())
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
	seen *Memory
}

// XXX_MessageName is what the key is called on the wire, where it is the key that it holds.
func (k key) XXX_MessageName() string { return proto.MessageName(k.PubKey) }

// VerifySignature implements cryptotypes.PubKey.
func (k key) VerifySignature(text, signature []byte) bool {
	d := canon.Sum("starling/signature/1", k.Key, text, signature)
	if _, right := k.seen.right.get(d); right {
		return true
	}
	if !k.PubKey.VerifySignature(text, signature) {
		return false
	}
	k.seen.right.put(d, struct{}{})
	return true
}
