package format

const snapshotMagic = "fabsh snapshot "

var cacheMagic = []byte{0x2b, 0x83, 0xe7, 0x8f}
