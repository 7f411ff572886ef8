package keystore

import (
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client/wallet"
)

// ValidatorKeys are what the secret of a validator's folder stands for, and the secret itself.
type ValidatorKeys struct {
	Operator string // account
	Node     string // identity of the process among the validators'
	Phrase   string // the secret as words
	Key      string // of the operator, as wallets import it; "" if they make it of the words themselves
}

// ReadValidatorKeys reads the keys of the validator in a folder: chain.ErrNoSecret if it has none.
func ReadValidatorKeys(dir string) (ValidatorKeys, error) {
	secret, err := chain.ReadSecret(dir)
	if err != nil {
		return ValidatorKeys{}, err
	}
	keys := chain.KeysOf(secret)
	v := ValidatorKeys{Operator: keys.Address(), Node: keys.NodeID(), Phrase: secret.Words()}
	if secret.Digest {
		v.Key = wallet.NewKey(keys.Operator).Hex()
	}
	return v, nil
}
