package terminal

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
)

// Counted is a number of things, as a sentence has it.
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// Clause is what the chain says is to be done, as the fixes of all other errors are written: one clause, without a full
// stop.
func Clause(text string) string {
	if text == "" || strings.Contains(text, ". ") {
		return text
	}
	return strings.ToLower(text[:1]) + strings.TrimSuffix(text[1:], ".")
}

// Message is the name of a message of the chain in words: cosmos.bank.v1beta1.MsgMultiSend is a multi send.
func Message(full string) string {
	var b strings.Builder
	for i, r := range strings.TrimPrefix(full[strings.LastIndexByte(full, '.')+1:], "Msg") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// CheckListen refuses an address of a flag that nothing can listen at.
func CheckListen(flag, address, example string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err == nil {
		return nil
	}
	return WithExit(&Problem{
		Code: "USAGE", What: fmt.Sprintf("%s %s is no address to listen at", flag, address), Why: err.Error(),
		Fix: "give host:port with a port of 0 to 65535, such as " + example,
	}, ExitUsage)
}
