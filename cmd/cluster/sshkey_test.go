// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGenerateSSHKey(t *testing.T) {
	g := NewWithT(t)
	private, public, err := generateSSHKey()
	g.Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(private)
	g.Expect(block.Type).To(Equal("RSA PRIVATE KEY"))
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())

	fields := strings.Fields(string(public))
	g.Expect(fields).To(HaveLen(2))
	g.Expect(fields[0]).To(Equal("ssh-rsa"))
	wire, err := base64.StdEncoding.DecodeString(fields[1])
	g.Expect(err).NotTo(HaveOccurred())
	var parts [][]byte
	for len(wire) > 0 {
		size := binary.BigEndian.Uint32(wire)
		parts = append(parts, wire[4:4+size])
		wire = wire[4+size:]
	}
	g.Expect(parts).To(HaveLen(3))
	g.Expect(string(parts[0])).To(Equal("ssh-rsa"))
	g.Expect(new(big.Int).SetBytes(parts[1]).Int64()).To(BeEquivalentTo(key.E))
	g.Expect(new(big.Int).SetBytes(parts[2])).To(Equal(key.N))
	g.Expect(parts[2][0]).To(BeZero(), "a number whose first bit is set needs a zero byte before it")
}

func TestPositive(t *testing.T) {
	tests := []struct {
		name string
		n    int64
		want []byte
	}{
		{"When the first bit is clear, the number should be unchanged", 0x7f, []byte{0x7f}},
		{"When the first bit is set, the number should get a leading zero byte", 0x80, []byte{0, 0x80}},
		{"When the number has two bytes, it should be encoded as two bytes", 0x0100, []byte{1, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(positive(big.NewInt(tt.n))).To(Equal(tt.want))
		})
	}
}
