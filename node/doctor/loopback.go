package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// loopback sends a few bytes through a TCP connection and a UDP socket of this machine to itself: what the embedded
// network, and QUIC, need.
func loopback(ctx context.Context, _ Options) Finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, try := range []struct {
		name string
		echo func(context.Context) error
	}{{"TCP", echoTCP}, {"UDP", echoUDP}} {
		if err := try.echo(ctx); err != nil {
			return Finding{Level: Fail, Text: fmt.Sprintf("%s on 127.0.0.1: %v", try.name, err),
				Fix: "allow programs to listen and connect on the loopback interface (firewall, container or sandbox settings)"}
		}
	}
	return Finding{Level: OK, Text: "TCP and UDP ports can be bound and reached on 127.0.0.1"}
}

var greeting = []byte("starling")

func echoTCP(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		return err
	}
	defer in.Close()
	return passes(ctx, out, in)
}

func echoUDP(ctx context.Context) error {
	in, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := new(net.Dialer).DialContext(ctx, "udp", in.LocalAddr().String())
	if err != nil {
		return err
	}
	defer out.Close()
	return passes(ctx, out, in)
}

// passes sends the greeting from one end to the other.
func passes(ctx context.Context, from, to net.Conn) error {
	if deadline, ok := ctx.Deadline(); ok {
		_ = to.SetDeadline(deadline)
	}
	if _, err := from.Write(greeting); err != nil {
		return err
	}
	got := make([]byte, len(greeting))
	if _, err := io.ReadFull(to, got); err != nil {
		return err
	}
	if !bytes.Equal(got, greeting) {
		return fmt.Errorf("%q was sent, %q arrived", greeting, got)
	}
	return nil
}
