// Package signature remembers which signatures of transactions are valid, so that a signature verified when its
// transaction entered the pool is not verified again when a block contains it. It refuses nothing: it verifies a
// signature that it does not remember with the key.
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

// Memory remembers valid signatures. The key of an entry is a digest of everything that the result depends on: the
// public key, the signed text and the signature. The result is therefore the same with and without the memory. Memory
// stores only valid signatures, so that an attacker who displaces entries needs an account and a signature for each.
//
// It also remembers the number of an account by its public key. The number is part of the signed text and never
// changes, so that Early can verify a transaction without the state.
type Memory struct {
	right   recent[canon.Digest, struct{}]
	numbers recent[string, uint64]
}

// Early verifies the signature of a transaction of one signer whose account number is remembered. It decides nothing:
// CheckTx verifies the signatures that Early skips or finds wrong.
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

// Accounts wraps the accounts for the SDK's verification of signatures. Their keys use the memory.
func (s *Memory) Accounts(k ante.AccountKeeper) ante.AccountKeeper { return verifying{k, s} }

// verifying are accounts whose secp256k1 keys use the memory. Other keys, and multisignature keys, stay as they are.
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

// holder is an account whose key uses the memory.
type holder struct {
	sdk.AccountI
	key key
}

// GetPubKey implements sdk.AccountI.
func (h holder) GetPubKey() cryptotypes.PubKey { return h.key }

// key is a public key that uses the memory.
type key struct {
	*secp256k1.PubKey
	seen *Memory
}

// XXX_MessageName is the name of the key on the wire: that of the plain key.
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
