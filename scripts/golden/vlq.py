"""Encodes ascending position lists as short text: run lengths as unsigned base64 VLQ numbers.

A row is the sequence gap, run, gap, run, ...: `gap` absent positions, then `run` present positions. Each number is written in
groups of 5 bits, lowest first. A digit with 32 added is followed by another digit. The digits 0...63 are A-Z a-z 0-9 - _ (as in
source maps, without the sign bit).
"""

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def number(value):
    text = ""
    while value >= 32:
        text += DIGITS[32 + value % 32]
        value //= 32
    return text + DIGITS[value]


def encode(positions):
    text, place, i = "", 0, 0
    positions = [int(p) for p in positions]
    while i < len(positions):
        start = positions[i]
        j = i
        while j < len(positions) and positions[j] == start + (j - i):
            j += 1
        text += number(start - place) + number(j - i)
        place, i = start + (j - i), j
    return text


def decode(text):
    numbers, value, shift = [], 0, 0
    for c in text:
        digit = DIGITS.index(c)
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            numbers.append(value)
            value = shift = 0
    positions, place = [], 0
    for gap, run in zip(numbers[::2], numbers[1::2]):
        positions += range(place + gap, place + gap + run)
        place += gap + run
    return positions
