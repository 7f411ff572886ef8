package terminal

import "testing"

// TestAdviceOfTheChain: a fix of the chain is written as all others are, and a transaction has its name in words.
func TestAdviceOfTheChain(t *testing.T) {
	for text, want := range map[string]string{
		"Fund the account, or send less.": "fund the account, or send less", "": "",
		"Wait. Then send it again.": "Wait. Then send it again.",
	} {
		if got := Clause(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for name, want := range map[string]string{
		"cosmos.bank.v1beta1.MsgSend": "send", "starling.registry.v1.MsgUpdateAddresses": "update addresses",
	} {
		if got := Message(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}
