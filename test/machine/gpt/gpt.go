// SPDX-License-Identifier: Apache-2.0

// Package gpt reads and writes GUID partition tables of disk images.
package gpt

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"unicode/utf16"
)

const (
	// SectorSize is the sector size of the disks, in bytes.
	SectorSize = 512
	// alignment is the alignment of partitions, in sectors (1 MiB).
	alignment = 2048

	entryCount   = 128
	entrySize    = 128
	entrySectors = entryCount * entrySize / SectorSize
	headerSize   = 92
	signature    = "EFI PART"
	revision     = 0x00010000
)

// GUID is a GUID in the byte order of the disk.
type GUID [16]byte

// Partition types.
var (
	BIOSBoot = GUID{0x48, 0x61, 0x68, 0x21, 0x49, 0x64, 0x6f, 0x6e, 0x74, 0x4e, 0x65, 0x65, 0x64, 0x45, 0x46, 0x49}
	EFI      = GUID{0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b}
	Linux    = GUID{0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4}
)

// ErrNoTable reports that the disk has no GUID partition table.
var ErrNoTable = errors.New("no GUID partition table")

// Partition is one entry of a table.
type Partition struct {
	// Number counts from 1.
	Number int
	// Name is the partition's label, at most 36 characters.
	Name string
	Type GUID
	// GUID is the ID of the partition; Write replaces a zero GUID with a random one.
	GUID GUID
	// First and Last are its first and last sector, both inclusive.
	First, Last uint64
}

// Offset returns the start of the partition, in bytes.
func (p Partition) Offset() int64 { return int64(p.First) * SectorSize }

// Size returns the partition's size in bytes.
func (p Partition) Size() int64 { return int64(p.Last-p.First+1) * SectorSize }

// Part is a partition to create.
type Part struct {
	Name string
	Type GUID
	// MiB is its size; the one partition with zero gets the remaining space.
	MiB int64
}

// Layout places parts one after the other on a disk of diskBytes bytes.
func Layout(diskBytes int64, parts []Part) ([]Partition, error) {
	free := diskBytes/(alignment*SectorSize) - 2 // The first and the last MiB contain the tables.
	for _, part := range parts {
		free -= part.MiB
	}
	if free < 1 {
		return nil, fmt.Errorf("a disk of %d bytes is too small for its partitions: %d MiB more are needed", diskBytes, 1-free)
	}
	var partitions []Partition
	next := uint64(alignment)
	for i, part := range parts {
		size := part.MiB
		if size == 0 {
			size = free
		}
		last := next + uint64(size)*alignment - 1
		partitions = append(partitions, Partition{Number: i + 1, Name: part.Name, Type: part.Type, First: next, Last: last})
		next = last + 1
	}
	return partitions, nil
}

type header struct {
	Signature                  [8]byte
	Revision, HeaderSize       uint32
	HeaderCRC, _               uint32
	Current, Backup            uint64
	FirstUsable, LastUsable    uint64
	DiskGUID                   GUID
	EntriesLBA                 uint64
	Entries, EntrySize, ArrCRC uint32
}

type entry struct {
	Type, GUID  GUID
	First, Last uint64
	Attributes  uint64
	Name        [36]uint16
}

// Read reads the table at the start of the disk. If there is none, the error wraps ErrNoTable.
func Read(disk io.ReaderAt) ([]Partition, error) {
	_, partitions, err := read(disk)
	return partitions, err
}

func read(disk io.ReaderAt) (*header, []Partition, error) {
	h := &header{}
	raw := make([]byte, headerSize)
	if _, err := disk.ReadAt(raw, SectorSize); err != nil {
		return nil, nil, fmt.Errorf("reading the partition table: %w", err)
	}
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, h); err != nil {
		return nil, nil, fmt.Errorf("reading the partition table: %w", err)
	}
	if string(h.Signature[:]) != signature || h.EntrySize != entrySize || h.Entries > entryCount {
		return nil, nil, ErrNoTable
	}
	entries := make([]entry, h.Entries)
	array := make([]byte, h.Entries*entrySize)
	if _, err := disk.ReadAt(array, int64(h.EntriesLBA)*SectorSize); err != nil {
		return nil, nil, fmt.Errorf("reading the partition table: %w", err)
	}
	if crc32.ChecksumIEEE(array) != h.ArrCRC {
		return nil, nil, fmt.Errorf("%w: its checksum does not match", ErrNoTable)
	}
	if err := binary.Read(bytes.NewReader(array), binary.LittleEndian, entries); err != nil {
		return nil, nil, fmt.Errorf("reading the partition table: %w", err)
	}
	return h, partitionsOf(entries), nil
}

func partitionsOf(entries []entry) []Partition {
	var partitions []Partition
	for i, e := range entries {
		if e.Type == (GUID{}) {
			continue
		}
		name := string(utf16.Decode(e.Name[:]))
		partitions = append(partitions, Partition{
			Number: i + 1, Name: string(bytes.TrimRight([]byte(name), "\x00")), Type: e.Type, GUID: e.GUID, First: e.First, Last: e.Last,
		})
	}
	return partitions
}

// Write writes a new table, its backup and the protective MBR to a disk image.
func Write(disk *os.File, partitions []Partition) error {
	return write(disk, randomGUID(), partitions)
}

// Delete removes a partition from the table, if it exists; its content stays on the disk.
func Delete(disk *os.File, number int) error {
	h, partitions, err := read(disk)
	if err != nil {
		return err
	}
	kept := partitions[:0]
	for _, p := range partitions {
		if p.Number != number {
			kept = append(kept, p)
		}
	}
	return write(disk, h.DiskGUID, kept)
}

func write(disk *os.File, guid GUID, partitions []Partition) error {
	size, err := disk.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("writing the partition table of %s: %w", disk.Name(), err)
	}
	sectors := uint64(size) / SectorSize
	array := entryArray(partitions)
	first := header{
		Revision: revision, HeaderSize: headerSize, Current: 1, Backup: sectors - 1, FirstUsable: 2 + entrySectors,
		LastUsable: sectors - entrySectors - 2, DiskGUID: guid, EntriesLBA: 2, Entries: entryCount, EntrySize: entrySize,
		ArrCRC: crc32.ChecksumIEEE(array),
	}
	copy(first.Signature[:], signature)
	second := first
	second.Current, second.Backup, second.EntriesLBA = sectors-1, 1, sectors-1-entrySectors
	for _, block := range []struct {
		sector uint64
		data   []byte
	}{
		{0, protectiveMBR(sectors)},
		{first.EntriesLBA, array}, {first.Current, first.encode()},
		{second.EntriesLBA, array}, {second.Current, second.encode()},
	} {
		if _, err := disk.WriteAt(block.data, int64(block.sector)*SectorSize); err != nil {
			return fmt.Errorf("writing the partition table of %s: %w", disk.Name(), err)
		}
	}
	return disk.Sync()
}

func entryArray(partitions []Partition) []byte {
	entries := make([]entry, entryCount)
	for _, p := range partitions {
		e := entry{Type: p.Type, GUID: p.GUID, First: p.First, Last: p.Last}
		if e.GUID == (GUID{}) {
			e.GUID = randomGUID()
		}
		copy(e.Name[:], utf16.Encode([]rune(p.Name)))
		entries[p.Number-1] = e
	}
	return encode(entries)
}

func (h header) encode() []byte {
	h.HeaderCRC = 0
	h.HeaderCRC = crc32.ChecksumIEEE(encode(h))
	sector := make([]byte, SectorSize)
	copy(sector, encode(h))
	return sector
}

// encode cannot fail, since all values have a fixed size.
func encode(value any) []byte {
	var buffer bytes.Buffer
	_ = binary.Write(&buffer, binary.LittleEndian, value)
	return buffer.Bytes()
}

// protectiveMBR tells programs without GPT support that the disk is full.
func protectiveMBR(sectors uint64) []byte {
	mbr := make([]byte, SectorSize)
	length := uint32(min(sectors-1, 0xffffffff))
	copy(mbr[446:], []byte{0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0})
	binary.LittleEndian.PutUint32(mbr[458:], length)
	mbr[510], mbr[511] = 0x55, 0xaa
	return mbr
}

func randomGUID() GUID {
	var g GUID
	_, _ = rand.Read(g[:])  // never fails
	g[7] = g[7]&0x0f | 0x40 // version 4
	g[8] = g[8]&0x3f | 0x80 // variant of RFC 4122
	return g
}
