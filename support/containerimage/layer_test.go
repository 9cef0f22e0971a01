// SPDX-License-Identifier: Apache-2.0

package containerimage

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBindsLowPorts(t *testing.T) {
	g := NewWithT(t)
	target := filepath.Join(t.TempDir(), "layer.tar")
	g.Expect(WriteLayer(target, []File{
		{Path: "/coredns", Data: []byte("x"), BindsLowPorts: true}, {Path: "/plain", Data: []byte("x")},
	})).To(Succeed())
	file, err := os.Open(target)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	capabilities := map[string]string{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		capabilities[header.Name] = header.PAXRecords["SCHILY.xattr.security.capability"]
	}
	g.Expect(capabilities).To(HaveKeyWithValue("plain", ""))
	// The layout is struct vfs_cap_data of <linux/capability.h>: revision 2 with the effective bit, then the permitted
	// set.
	value := []byte(capabilities["coredns"])
	g.Expect(value).To(HaveLen(20))
	g.Expect(binary.LittleEndian.Uint32(value)).To(Equal(uint32(0x02000001)))
	g.Expect(binary.LittleEndian.Uint32(value[4:])).To(Equal(uint32(1 << 10)))
}
