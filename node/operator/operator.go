// Package operator reads the keys of the operator of a validator from the folder of the validator. Package chain makes
// and keeps them.
package operator

import (
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/wallet"
)

// Keys are what the secret of a validator's folder stands for, and the secret itself.
type Keys struct {
	Operator string // account
	Node     string // identity of the process among the validators'
	Phrase   string // the secret as words
	Key      string // of the operator, as wallets import it; "" if they make it of the words themselves
}

// ReadKeys reads the keys of the validator in a folder: identity.ErrNoSecret if it has none.
func ReadKeys(dir string) (Keys, error) {
	secret, err := identity.ReadSecret(dir)
	if err != nil {
		return Keys{}, err
	}
	keys := identity.KeysOf(secret)
	v := Keys{Operator: keys.Address(), Node: keys.NodeID(), Phrase: secret.Words()}
	if secret.Digest {
		v.Key = wallet.NewKey(keys.Operator.Key).Hex()
	}
	return v, nil
}
